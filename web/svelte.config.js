// Svelte strips the types of <script lang="ts"> itself; nothing else to preprocess.
export default {
  compilerOptions: {
    // Roles of tables are written out on purpose: style sheets that show tables as cards take them away.
    warningFilter: (warning) => warning.code !== "a11y_no_redundant_roles",
  },
};
