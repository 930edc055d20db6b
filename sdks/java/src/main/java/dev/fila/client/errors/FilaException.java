package dev.fila.client.errors;

import io.grpc.Status;

/**
 * The root of every way a call can fail: what was asked for did not happen, unless a class says
 * otherwise.
 *
 * <pre>
 * FilaException
 * ├── NotFoundException
 * │   ├── QueueNotFoundException
 * │   ├── ChannelNotFoundException
 * │   ├── MessageNotFoundException
 * │   └── ConfigKeyNotFoundException
 * ├── ExistsException
 * │   ├── QueueExistsException
 * │   └── ChannelExistsException
 * ├── InvalidException                 the request is wrong; repeating it changes nothing
 * │   └── LimitExceededException
 * ├── ConflictException                right once, or right in another state
 * │   ├── LeaseLostException
 * │   └── SourceQueueGoneException
 * ├── OverloadedException              capacity; the same call may succeed later
 * │   ├── QueueFullException
 * │   ├── HooksFullException
 * │   └── DiskFloorException
 * ├── UnavailableException             the broker could not be reached, or is stopping
 * │   ├── AnswerLostException          it may or may not have happened
 * │   └── NotOwnerException            another node of the group serves
 * ├── NotSupportedException
 * ├── NotAllowedException
 * ├── InternalException
 * │   └── LogDamagedException          what can't be read, and where to read on
 * ├── ClientClosedException
 * ├── CallInterruptedException         your thread was interrupted while it waited
 * └── SomeFailedException              some items of a batch
 * </pre>
 *
 * <p>Unchecked: most programs handle few of these, and those at one place. A reason that this
 * version does not know comes from a newer broker: then the status code still says which branch of
 * the tree it belongs to.
 */
public class FilaException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final ErrorDetails details;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public FilaException(ErrorDetails details) {
        super(details.message(), details.cause());
        this.details = details;
    }

    /** The gRPC status code, for programs. */
    public Status.Code code() {
        return details.code();
    }

    /**
     * The broker's reason, such as {@code QUEUE_NOT_FOUND}; empty when it was not the broker that
     * refused.
     */
    public String reason() {
        return details.reason();
    }

    /** Everything the error carries. */
    public ErrorDetails details() {
        return details;
    }
}
