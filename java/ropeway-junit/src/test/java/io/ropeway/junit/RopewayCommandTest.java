package io.ropeway.junit;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class RopewayCommandTest {
    @Test
    void aCommandThatIsNotThereIsNamedWithAWayToInstallIt() {
        RopewayException error =
                assertThrows(
                        RopewayException.class,
                        () -> RopewayGateway.builder().command("ropeway-of-nobody").start());
        String said = error.getMessage();
        assertTrue(said.startsWith("the command 'ropeway-of-nobody' (command(...)) was"), said);
        assertTrue(said.contains("pip install 'ropeway[grpc]'"), said);
    }

    @Test
    void aSystemPropertyNamesTheCommand() {
        String before = System.setProperty(RopewayCommand.PROPERTY, "/nowhere/ropeway");
        try {
            RopewayException error =
                    assertThrows(RopewayException.class, () -> RopewayCommand.find(null));
            assertTrue(error.getMessage().contains("(the system property ropeway.command)"));
        } finally {
            if (before == null) {
                System.clearProperty(RopewayCommand.PROPERTY);
            } else {
                System.setProperty(RopewayCommand.PROPERTY, before);
            }
        }
    }
}
