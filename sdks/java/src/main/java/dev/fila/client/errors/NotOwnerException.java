package dev.fila.client.errors;

/**
 * Another node of the group serves, and nothing happened; {@link #owner()} is its address. The
 * client goes there by itself, for as long as it tries a call again.
 */
public class NotOwnerException extends UnavailableException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public NotOwnerException(ErrorDetails details) {
        super(details);
    }

    /** Where the owner listens; empty where the node that refused does not know it. */
    public String owner() {
        return details().field("owner");
    }
}
