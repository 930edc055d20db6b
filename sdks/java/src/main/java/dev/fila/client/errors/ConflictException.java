package dev.fila.client.errors;

/** The request was right once, or would be right in another state. */
public class ConflictException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public ConflictException(ErrorDetails details) {
        super(details);
    }
}
