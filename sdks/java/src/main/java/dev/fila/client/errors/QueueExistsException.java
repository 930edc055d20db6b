package dev.fila.client.errors;

/** A queue of that name exists; {@link #queue()} is the name. */
public class QueueExistsException extends ExistsException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public QueueExistsException(ErrorDetails details) {
        super(details);
    }
}
