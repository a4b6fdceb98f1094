package example;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class InboxTest {
    @Test
    void whatIsPutIsTakenInOrder() throws InterruptedException {
        Inbox inbox = new Inbox();
        inbox.put("first");
        inbox.put("second");
        assertThat(inbox.take(2)).containsExactly("first", "second");
    }
}
