package dev.fila.client.errors;

/**
 * Reading the log came to messages that the broker's disk damaged; the text says from which offset
 * to read on.
 */
public class LogDamagedException extends InternalException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public LogDamagedException(ErrorDetails details) {
        super(details);
    }
}
