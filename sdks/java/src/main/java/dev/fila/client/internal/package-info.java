/** What the client is made of and nobody else sees: the module does not export it. */
@NullMarked
package dev.fila.client.internal;

import org.jspecify.annotations.NullMarked;
