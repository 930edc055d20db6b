package dev.fila.client.errors;

/**
 * The thread was interrupted while it waited. Its interrupt flag is set again. What it waited for
 * may or may not have happened.
 */
public class CallInterruptedException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public CallInterruptedException(ErrorDetails details) {
        super(details);
    }
}
