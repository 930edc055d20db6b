package dev.fila.client.errors;

/** This broker does not do that (yet). */
public class NotSupportedException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public NotSupportedException(ErrorDetails details) {
        super(details);
    }
}
