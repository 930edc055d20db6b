package dev.fila.client.errors;

/**
 * The request itself is wrong, and repeating it changes nothing. The text names the field and its
 * bound.
 */
public class InvalidException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public InvalidException(ErrorDetails details) {
        super(details);
    }

    /** The field that is wrong, by its name on the wire; empty where the broker named none. */
    public String field() {
        return details().field("field");
    }
}
