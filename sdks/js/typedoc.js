import { OptionDefaults } from 'typedoc';

/** @type {import('typedoc').TypeDocOptions} */
export default {
  entryPoints: ['src/index.ts', 'src/opentelemetry.ts'],
  out: 'docs',
  readme: 'README.md',
  treatWarningsAsErrors: true,
  // The README speaks of directories of the repository, of which no copy is made.
  validation: { invalidPath: false },
  excludePrivate: true,
  excludeInternal: true,
  // Links to source lines take a remote named origin, which a checkout need not have.
  disableSources: true,
  // Plain shows what it comes to.
  intentionallyNotExported: ['Word', 'AnyNumber'],
  // Where a field of an answer comes from in the generated code is nothing for the reader.
  blockTags: [...OptionDefaults.blockTags, '@generated'],
  excludeTags: ['@generated'],
};
