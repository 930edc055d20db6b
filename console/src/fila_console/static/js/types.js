// The shapes that travel: what cells.py of the server writes, as JSDoc types. There is no code here.

/**
 * @typedef {{t: string, tone?: string, title?: string, href?: string, bar?: number, color?: number}} Cell
 * @typedef {{id: string, cells: Cell[], href?: string, tone?: string}} Row
 * @typedef {{times: number[], series: Record<string, (number|null)[]>, colors: Record<string, number>, dashed: string[], unit: string, step: number}} WholePlot
 * @typedef {{at: number|null, values: Record<string, number|null>, colors: Record<string, number>, dashed: string[]}} NewestPoint
 * @typedef {{texts: Record<string, Cell>, tables: Record<string, Row[]>, plots: Record<string, WholePlot>, lines: Record<string, string>}} Whole
 * @typedef {{rows?: Row[], order?: string[]}} RowChanges
 * @typedef {{texts: Record<string, Cell>, tables: Record<string, RowChanges>, plots: Record<string, NewestPoint|WholePlot>, lines: Record<string, string>}} Changes
 * @typedef {{title: string, text: string, advice: string}} Failure
 * @typedef {{initSecurity: (policy: unknown, sync: () => never, async: () => never) => void}} HtmxInternals
 */

export {};
