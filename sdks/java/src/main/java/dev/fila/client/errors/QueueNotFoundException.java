package dev.fila.client.errors;

/** There is no queue of that name; {@link #queue()} is the name. */
public class QueueNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public QueueNotFoundException(ErrorDetails details) {
        super(details);
    }
}
