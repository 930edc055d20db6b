/**
 * Arguments of a wrong type or out of range, told by their name where they were given: later, in a frame with
 * those of others, nobody could say whose they were.
 */

const SHOWN_MAX = 60;

/** Refuses what is no string, or is one that UTF-8 can't write. */
export function requireText(name: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw wrongType(name, 'a string', value);
  if (!isWellFormed(value)) {
    throw new RangeError(
      `${name} must be text that can be written as UTF-8, got a lone surrogate in ${shown(value)}`,
    );
  }
}

/** As `requireText`, of what may be left out. */
export function requireTextIfGiven(name: string, value: unknown): asserts value is string | undefined {
  if (value !== undefined) requireText(name, value);
}

/** Refuses what is no number from `least` to `most`. */
export function requireRange(
  name: string,
  value: unknown,
  least: number,
  most: number,
  wanted = 'a number',
): asserts value is number {
  if (typeof value !== 'number' || Number.isNaN(value)) throw wrongType(name, wanted, value);
  if (value < least || value > most) {
    const bound = most === Infinity ? `at least ${least}` : `from ${least} to ${most}`;
    throw new RangeError(`${name} must be ${bound}, got ${value}`);
  }
}

/** Refuses what is no whole number from 0 to `most`. */
export function requireWhole(
  name: string,
  value: unknown,
  most: number = Number.MAX_SAFE_INTEGER,
): asserts value is number {
  requireRange(name, value, 0, most);
  if (!Number.isInteger(value)) throw new RangeError(`${name} must be a whole number, got ${value}`);
}

/** Refuses what is no whole number from 1 to `most`: on the wire 0 means that nothing was said. */
export function requireCount(name: string, value: unknown, most: number): asserts value is number {
  requireRange(name, value, 1, most);
  requireWhole(name, value, most);
}

/** The most that a uint32 of the wire holds. */
export const UINT32_MAX = 2 ** 32 - 1;

/** A whole number as the wire's 64 bits. */
export function toUint64(name: string, value: unknown): bigint {
  requireWhole(name, value);
  return BigInt(value);
}

/** Whole numbers as the wire's 64 bits. */
export function toUint64s(name: string, values: unknown): bigint[] {
  if (!Array.isArray(values)) throw wrongType(name, 'an array of numbers', values);
  return values.map((value, index) => toUint64(`${name}[${index}]`, value));
}

/** Refuses what is no array of strings. */
export function requireTexts(name: string, values: unknown): asserts values is readonly string[] {
  if (!Array.isArray(values)) throw wrongType(name, 'an array of strings', values);
  values.forEach((value, index) => requireText(`${name}[${index}]`, value));
}

/** Refuses what is no Date, or none that names a moment. */
export function requireMoment(name: string, value: unknown): asserts value is Date {
  if (!(value instanceof Date)) throw wrongType(name, 'a Date', value);
  if (Number.isNaN(value.getTime())) throw new RangeError(`${name} must be a valid Date`);
}

/** Refuses headers that are no strings by string. */
export function requireHeaders(headers: unknown): asserts headers is Readonly<Record<string, string>> {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers) || headers instanceof Map) {
    throw wrongType('headers', 'an object of strings', headers);
  }
  for (const [key, value] of Object.entries(headers)) {
    requireText('a key of headers', key);
    requireText(`headers[${shown(key)}]`, value);
  }
}

const encoder = new TextEncoder();

/** Returns a payload's bytes; text is written as UTF-8. */
export function payloadBytes(payload: unknown): Uint8Array {
  if (payload instanceof Uint8Array) return payload;
  if (typeof payload !== 'string') throw wrongType('payload', 'a Uint8Array or a string', payload);
  requireText('payload', payload);
  return encoder.encode(payload);
}

/** Says what was wanted and what was given. */
export function wrongType(name: string, wanted: string, value: unknown): TypeError {
  const given = typeof value === 'object' ? Object.prototype.toString.call(value).slice(8, -1) : typeof value;
  return new TypeError(`${name} must be ${wanted}, got ${given}`);
}

function shown(value: string): string {
  const quoted = JSON.stringify(value);
  return quoted.length <= SHOWN_MAX ? quoted : `${quoted.slice(0, SHOWN_MAX - 3)}...`;
}

// A lone half of a surrogate pair; String.prototype.isWellFormed came after Node 20.0.
const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;
const NOT_ASCII = /[^\0-\x7F]/;

function isWellFormed(text: string): boolean {
  return !NOT_ASCII.test(text) || !LONE_SURROGATE.test(text);
}
