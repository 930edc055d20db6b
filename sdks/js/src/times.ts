/** Between the wire's moments and JavaScript's. */

import type { Timestamp } from '@bufbuild/protobuf/wkt';

/** A moment as the wire has it. */
export function toTimestamp(moment: Date): Timestamp {
  const ms = moment.getTime();
  const seconds = Math.floor(ms / 1000);
  return {
    $typeName: 'google.protobuf.Timestamp',
    seconds: BigInt(seconds),
    nanos: (ms - seconds * 1000) * 1e6,
  };
}

/** Milliseconds since 1970, with their fraction. */
export function toMs(timestamp: Timestamp | undefined): number {
  return timestamp === undefined ? 0 : Number(timestamp.seconds) * 1000 + timestamp.nanos / 1e6;
}

/** A wire moment as a Date, which knows whole milliseconds. */
export function toDate(timestamp: Timestamp | undefined): Date {
  return new Date(Math.floor(toMs(timestamp)));
}
