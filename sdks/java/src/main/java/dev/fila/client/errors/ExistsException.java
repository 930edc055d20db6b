package dev.fila.client.errors;

/** What should have been made exists already. */
public class ExistsException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public ExistsException(ErrorDetails details) {
        super(details);
    }

    /** The queue's name. */
    public String queue() {
        return details().field("queue");
    }
}
