package io.ropeway.junit;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Finds the installed {@code ropeway} command, and runs it. */
final class RopewayCommand {
    static final String PROPERTY = "ropeway.command";
    static final String VARIABLE = "ROPEWAY_COMMAND";
    private static final long SECONDS = 60;

    private RopewayCommand() {}

    /** Gives the command's path; {@code wanted} may be null. */
    static String find(String wanted) {
        if (wanted != null) {
            return find(wanted, "command(...)");
        }
        String property = System.getProperty(PROPERTY);
        if (property != null) {
            return find(property, "the system property " + PROPERTY);
        }
        String variable = System.getenv(VARIABLE);
        if (variable != null) {
            return find(variable, "the environment variable " + VARIABLE);
        }
        return find("ropeway", "default");
    }

    private static String find(String name, String source) {
        if (name.contains(File.separator)) {
            if (Files.isExecutable(Paths.get(name))) {
                return name;
            }
        } else {
            for (String folder : System.getenv("PATH").split(File.pathSeparator)) {
                Path file = Paths.get(folder, name);
                if (Files.isExecutable(file) && Files.isRegularFile(file)) {
                    return file.toString();
                }
            }
        }
        throw new RopewayException(
                "the command '"
                        + name
                        + "' ("
                        + source
                        + ") was not found. Ropeway is a Python package: install it with `pip install"
                        + " 'ropeway[grpc]'`, and put its folder into PATH, or its path into the"
                        + " system property "
                        + PROPERTY
                        + " or the environment variable "
                        + VARIABLE);
    }

    /** Runs a program to its end; gives what it printed, through a file in a folder. */
    static String run(ProcessBuilder program, Path folder) {
        List<String> line = program.command();
        try {
            Path printed = Files.createTempFile(folder, "printed", null);
            Process process =
                    program.redirectErrorStream(true).redirectOutput(printed.toFile()).start();
            if (!process.waitFor(SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new RopewayException(line + " did not end in " + SECONDS + " s");
            }
            String said = new String(Files.readAllBytes(printed), StandardCharsets.UTF_8);
            if (process.exitValue() != 0) {
                throw new RopewayException(line + ": " + said.trim());
            }
            return said;
        } catch (IOException error) {
            throw new RopewayException("cannot run " + line, error);
        } catch (InterruptedException error) {
            throw interrupted(error);
        }
    }

    /** Keeps a thread interrupted, and gives the exception that says so. */
    static RopewayException interrupted(InterruptedException error) {
        Thread.currentThread().interrupt();
        return new RopewayException("interrupted", error);
    }
}
