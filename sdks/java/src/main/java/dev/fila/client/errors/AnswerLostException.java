package dev.fila.client.errors;

/** The request may have arrived, but no answer came: it may or may not have happened. */
public class AnswerLostException extends UnavailableException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public AnswerLostException(ErrorDetails details) {
        super(details);
    }
}
