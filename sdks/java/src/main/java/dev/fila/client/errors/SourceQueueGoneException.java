package dev.fila.client.errors;

/** A dead letter cannot go back: the queue it came from was deleted. */
public class SourceQueueGoneException extends ConflictException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public SourceQueueGoneException(ErrorDetails details) {
        super(details);
    }

    /** The dead-letter queue's name. */
    public String queue() {
        return details().field("queue");
    }
}
