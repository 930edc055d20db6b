package dev.fila.client.errors;

/** The queue has a channel of that name. */
public class ChannelExistsException extends ExistsException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public ChannelExistsException(ErrorDetails details) {
        super(details);
    }

    /** The channel's name. */
    public String channel() {
        return details().field("channel");
    }
}
