import { OptionDefaults } from 'typedoc';

/** @type {import('typedoc').TypeDocOptions} */
export default {
  entryPoints: ['src/index.ts', 'src/opentelemetry.ts'],
  out: 'docs',
  readme: 'README.md',
  treatWarningsAsErrors: true,
  excludePrivate: true,
  excludeInternal: true,
  // Plain shows what it comes to.
  intentionallyNotExported: ['Word', 'AnyNumber'],
  // Where a field of an answer comes from in the generated code is nothing for the reader.
  blockTags: [...OptionDefaults.blockTags, '@generated'],
  excludeTags: ['@generated'],
};
