/** Every way a call can fail: {@link dev.fila.client.errors.FilaException} draws the tree. */
@NullMarked
package dev.fila.client.errors;

import org.jspecify.annotations.NullMarked;
