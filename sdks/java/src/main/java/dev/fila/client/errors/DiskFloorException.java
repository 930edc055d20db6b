package dev.fila.client.errors;

/** The broker's disk is nearly full: enqueues are refused, acks and deliveries go on. */
public class DiskFloorException extends OverloadedException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public DiskFloorException(ErrorDetails details) {
        super(details);
    }
}
