package dev.fila.client.errors;

/** Too many messages wait for a queue's script that fails ({@code hook_fallback = hold}). */
public class HooksFullException extends OverloadedException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public HooksFullException(ErrorDetails details) {
        super(details);
    }

    /** The queue's name. */
    public String queue() {
        return details().field("queue");
    }
}
