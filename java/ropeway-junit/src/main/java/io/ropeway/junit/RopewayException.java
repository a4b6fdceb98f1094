package io.ropeway.junit;

/** The gateway could not be started or asked; the message says why and what to do. */
public final class RopewayException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RopewayException(String message) {
        super(message);
    }

    RopewayException(String message, Throwable cause) {
        super(message, cause);
    }
}
