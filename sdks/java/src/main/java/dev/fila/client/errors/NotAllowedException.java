package dev.fila.client.errors;

/** Who you are does not permit it: the credentials are missing or insufficient. */
public class NotAllowedException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public NotAllowedException(ErrorDetails details) {
        super(details);
    }
}
