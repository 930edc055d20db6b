package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Arguments that are refused before anything is sent. */
class ArgumentsTest extends FakeBrokerTest {
    @Test
    void noMessagesAreNoNumberToAskFor() {
        connect(quick());
        String text = "maxMessages must be from 1 to 2147483647, got 0";
        assertEquals(text, refusal(() -> client.lease("orders", 0)));
        assertEquals(text, refusal(() -> PeekOptions.builder().maxMessages(0)));
    }

    private static String refusal(Executable call) {
        return assertThrows(IllegalArgumentException.class, call).getMessage();
    }
}
