package dev.fila.client.errors;

/** The queue exists, but has no such channel. */
public class ChannelNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public ChannelNotFoundException(ErrorDetails details) {
        super(details);
    }

    /** The channel's name. */
    public String channel() {
        return details().field("channel");
    }
}
