package dev.fila.client.errors;

/** A bound of the broker's {@code [limits]} was passed. */
public class LimitExceededException extends InvalidException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public LimitExceededException(ErrorDetails details) {
        super(details);
    }
}
