/**
 * First in, first out, at the same cost whatever its length: an array's `shift` moves all the
 * others.
 */
export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Puts an item in front. */
  unshift(item: T): void {
    if (this.#head > 0) this.#items[--this.#head] = item;
    else this.#items.unshift(item);
  }

  /** Takes the oldest. */
  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    // Dropping the empty half only when it is the larger one keeps the cost of an item constant.
    if (this.#head > 32 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  /** Takes the newest. */
  pop(): T | undefined {
    return this.length === 0 ? undefined : this.#items.pop();
  }

  /** Takes out one item, wherever it is; false when it is not there. */
  remove(item: T): boolean {
    const at = this.#items.indexOf(item, this.#head);
    if (at >= 0) this.#items.splice(at, 1);
    return at >= 0;
  }

  /** Takes everything out, oldest first. */
  takeAll(): T[] {
    const all = this.#items.slice(this.#head) as T[];
    this.#items = [];
    this.#head = 0;
    return all;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let at = this.#head; at < this.#items.length; at++) yield this.#items[at] as T;
  }
}
