package dev.fila.client.errors;

/** What was named does not exist. */
public class NotFoundException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public NotFoundException(ErrorDetails details) {
        super(details);
    }

    /** The queue that was asked for; empty where none was. */
    public String queue() {
        return details().field("queue");
    }
}
