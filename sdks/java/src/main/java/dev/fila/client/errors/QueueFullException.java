package dev.fila.client.errors;

/** The queue is at its {@code max_depth} or {@code max_bytes}. */
public class QueueFullException extends OverloadedException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public QueueFullException(ErrorDetails details) {
        super(details);
    }

    /** The queue's name. */
    public String queue() {
        return details().field("queue");
    }
}
