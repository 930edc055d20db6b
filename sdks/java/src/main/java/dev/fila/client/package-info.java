/**
 * A client for the message broker Fila. Start at {@link dev.fila.client.FilaClient}.
 *
 * <p>For readers of the source: an enqueue goes through Producer, Frame and FrameAnswers; a
 * delivery through Session, HandOut and Holding; an ack through Settler and SettleFrame; every call
 * through Connection and RetriedCall; every setting is in ClientOptions; the errors are in {@link
 * dev.fila.client.errors}.
 */
@NullMarked
package dev.fila.client;

import org.jspecify.annotations.NullMarked;
