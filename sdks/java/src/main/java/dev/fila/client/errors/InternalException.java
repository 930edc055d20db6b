package dev.fila.client.errors;

/** The broker's own mistake, or this client's; the broker's log has the rest. */
public class InternalException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public InternalException(ErrorDetails details) {
        super(details);
    }
}
