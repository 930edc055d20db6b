package dev.fila.client.errors;

/** The call was made on a closed client, or outlived it. */
public class ClientClosedException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public ClientClosedException(ErrorDetails details) {
        super(details);
    }
}
