package dev.fila.client.errors;

/**
 * The message is stored, but this delivery's lease is over: it was, or will be, delivered again.
 */
public class LeaseLostException extends ConflictException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public LeaseLostException(ErrorDetails details) {
        super(details);
    }

    /** The message's id. */
    public String messageId() {
        return details().field("message_id");
    }

    /** The lease that is over; 0 where it is not known. */
    public long leaseId() {
        String leaseId = details().field("lease_id");
        return leaseId.isEmpty() ? 0 : Long.parseUnsignedLong(leaseId);
    }
}
