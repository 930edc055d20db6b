package dev.fila.client.errors;

/**
 * The broker could not be reached, or is stopping. Nothing happened, unless it is an {@link
 * AnswerLostException}.
 */
public class UnavailableException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public UnavailableException(ErrorDetails details) {
        super(details);
    }
}
