package dev.fila.client.errors;

/** The message is not stored (done, dropped, purged), or is not leased and no lease was named. */
public class MessageNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public MessageNotFoundException(ErrorDetails details) {
        super(details);
    }

    /** The message's id. */
    public String messageId() {
        return details().field("message_id");
    }
}
