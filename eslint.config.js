// Type-checked rules for src, test, scripts and benchmarks. Besides the usual ones it guards against an `expect(x)` that
// asserts nothing, a forgotten `.only`, commands that would wipe a shared Redis, and classes that extend classes that extend classes.
import js from '@eslint/js'
import { defineConfig } from 'eslint/config'
import ts from 'typescript'
import tseslint from 'typescript-eslint'

const wipes = 'A test or script deletes its own keys by name; it never wipes a server that others may use.'
const wiping = '/^flush(all|db)$/i'

const always = [
  { selector: `TemplateElement[value.raw=/\\bflush(all|db)\\b/i]`, message: wipes },
  { selector: `Literal[value=/\\bflush(all|db)\\b/i]`, message: wipes },
  { selector: `MemberExpression > Identifier.property[name=${wiping}]`, message: wipes },
]

const inTests = [
  {
    selector: 'ExpressionStatement > CallExpression[callee.name="expect"]',
    message: 'expect() without a matcher asserts nothing.',
  },
  {
    selector: 'ExpressionStatement > AwaitExpression > CallExpression[callee.name="expect"]',
    message: 'expect() without a matcher asserts nothing.',
  },
  {
    // chai's `expect(x).to.be.true` is a property that a typo turns into nothing: `.to.be.treu`
    selector: 'ExpressionStatement > MemberExpression',
    message: 'Use a matcher that is a call, such as .to.equal(true): a misspelt property would assert nothing.',
  },
  {
    selector: 'MemberExpression[object.name=/^(describe|context|it|specify)$/] > Identifier.property[name="only"]',
    message: '.only leaves the other tests out.',
  },
]

/** Classes share code by their parts; one may extend another that extends none of ours. Errors are the exception. */
const shallowClasses = {
  meta: { type: 'problem', schema: [], messages: { deep: 'One class too deep: {{ chain }}. Compose it of parts.' } },
  create(context) {
    const { program, esTreeNodeToTSNodeMap } = context.sourceCode.parserServices
    const checker = program.getTypeChecker()
    const isOurs = ({ symbol }) =>
      symbol?.declarations?.some((each) => !each.getSourceFile().fileName.includes('/node_modules/'))
    return {
      'ClassDeclaration[superClass]'(node) {
        const chain = []
        for (let type = checker.getTypeAtLocation(esTreeNodeToTSNodeMap.get(node)); type;) {
          chain.push(type)
          type = checker.getBaseTypes(type.target ?? type)[0]
        }
        const names = chain.map(({ symbol }) => symbol?.name)
        if (!names.includes('Error') && chain.filter(isOurs).length > 2)
          context.report({ node, messageId: 'deep', data: { chain: names.join(' extends ') } })
      },
    }
  },
}

/** The functions of tests that wait for a time: `pause(100)`. */
const PAUSES = ['pause', 'sleep']

/** A test waits for events. A time is allowed where it is part of the fault, or where nothing may happen, and a comment says which. */
const explainedPauses = {
  meta: {
    type: 'problem',
    schema: [],
    messages: { unexplained: 'Wait for the event, or say in a comment what this time is for.' },
  },
  create(context) {
    const { sourceCode } = context
    const { program, esTreeNodeToTSNodeMap } = sourceCode.parserServices
    const checker = program.getTypeChecker()
    const isBlank = (line, from, to) => sourceCode.lines[line - 1].slice(from, to).trim() === ''
    // a comment that stands alone is about the next line, one at the end of a line about that line
    const commented = new Set(
      sourceCode
        .getAllComments()
        .filter(({ loc: { end } }) => isBlank(end.line, end.column))
        .map(({ loc: { start, end } }) => (isBlank(start.line, 0, start.column) ? Number(end.line) + 1 : start.line)),
    )
    const pauses = new Set(PAUSES)
    const isDefinition = (node) =>
      sourceCode.getAncestors(node).some(({ id, key }) => PAUSES.includes(id?.name ?? key?.name))
    const statementOf = (node) =>
      [node, ...sourceCode.getAncestors(node).reverse()].find(({ type }) => /Statement$|Declaration$/.test(type))
    const check = (node) => {
      if (isDefinition(node) || commented.has(node.loc.start.line)) return
      if (commented.has(statementOf(node)?.loc.start.line)) return
      context.report({ node, messageId: 'unexplained' })
    }
    return {
      // new Promise((resolve) => setTimeout(resolve, ms)), with a limit of time or not
      'NewExpression[callee.name="Promise"] > ArrowFunctionExpression > CallExpression[callee.name="setTimeout"]':
        check,
      'NewExpression[callee.name="Promise"] > ArrowFunctionExpression > BlockStatement[body.length=1] > ExpressionStatement > CallExpression[callee.name="setTimeout"]':
        check,
      // import { setTimeout as wait } from 'node:timers/promises'
      'ImportDeclaration[source.value=/^(node:)?timers.promises$/] > ImportSpecifier[imported.name="setTimeout"]'({
        local,
      }) {
        pauses.add(local.name)
      },
      CallExpression(node) {
        if (!pauses.has(node.callee.name)) return
        const [first] = checker.getResolvedSignature(esTreeNodeToTSNodeMap.get(node))?.getParameters() ?? []
        if (first && checker.typeToString(checker.getTypeOfSymbol(first)).startsWith('number')) check(node)
      },
    }
  },
}

/** Each test calls `expect` or throws by itself, or by functions of the tests that it calls. */
const testsAssert = {
  meta: { type: 'problem', schema: [], messages: { none: 'This test asserts nothing.' } },
  create(context) {
    const { program, esTreeNodeToTSNodeMap } = context.sourceCode.parserServices
    const checker = program.getTypeChecker()
    const seen = new Map()
    const asserts = (node) => {
      if (seen.has(node)) return seen.get(node)
      seen.set(node, false) // for functions that call themselves
      const found =
        isAssertion(node) ||
        declarationsOf(node).some(asserts) ||
        ts.forEachChild(node, (child) => asserts(child) || undefined) === true
      seen.set(node, found)
      return found
    }
    const isAssertion = (node) =>
      ts.isThrowStatement(node) || (ts.isIdentifier(node) && /^(expect|assert)$/.test(node.text))
    const declarationsOf = (node) => {
      if (!ts.isIdentifier(node)) return []
      const symbol = checker.getSymbolAtLocation(node)
      const target = symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
      return (target?.declarations ?? []).filter(
        (each) =>
          /\/test\//.test(each.getSourceFile().fileName) && (ts.isFunctionLike(each) || ts.isVariableDeclaration(each)),
      )
    }
    return {
      'CallExpression[callee.name=/^(it|scenario)$/]'(node) {
        const test = node.arguments.find(({ type }) => /Function/.test(type)) ?? node.arguments.at(-1)
        if (test && !asserts(esTreeNodeToTSNodeMap.get(test))) context.report({ node, messageId: 'none' })
      },
    }
  },
}

export default defineConfig(
  {
    ignores: [
      '**/dist/',
      'src/server/dist.*/',
      '.cache/',
      'coverage/',
      'docs/',
      'benchmarks/results/',
      'src/**/scripts/generated.ts',
    ],
  },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['*.js', '*.cjs', 'src/server/.dependency-cruiser.cjs'] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    plugins: {
      redelayed: {
        rules: {
          'explained-pauses': explainedPauses,
          'tests-assert': testsAssert,
          'shallow-classes': shallowClasses,
        },
      },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      'no-restricted-syntax': ['error', ...always],
      eqeqeq: 'error',
      'prefer-const': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-floating-promises': ['error', { checkThenables: true }],
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-unused-expressions': 'error',
      // `() => void list.push(x)` and `void promise` are meant
      '@typescript-eslint/no-meaningless-void-operator': 'off',
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidOperator: true, ignoreVoidReturningFunctions: true },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // after every await a flag such as `stopped` may have changed, which this rule cannot see
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/use-unknown-in-catch-callback-variable': 'off',
      // two overloads are documented apart
      '@typescript-eslint/unified-signatures': 'off',
      // async without await turns what a function throws into a rejection
      '@typescript-eslint/require-await': 'off',
      // tsc says these (noUnusedLocals), and knows `_`
      '@typescript-eslint/no-unused-vars': 'off',
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: { 'redelayed/shallow-classes': 'error' },
  },
  {
    files: ['test/**', 'benchmarks/**', 'src/server/test/**'],
    rules: {
      'no-restricted-syntax': ['error', ...always, ...inTests],
      // in a test a wrong guess fails the test
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'off',
    },
  },
  {
    files: ['test/**/*.test.ts', 'test/jvm/scenarios/**', 'src/server/test/**/*.test.ts'],
    rules: { 'redelayed/explained-pauses': 'error', 'redelayed/tests-assert': 'error' },
  },
  {
    // what must not compile is the point there
    files: ['test/types/**'],
    rules: {
      '@typescript-eslint/ban-ts-comment': 'off',
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  {
    // the files that are CommonJS in the source, too
    files: ['src/**/*.cts'],
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
  {
    files: ['scripts/**'],
    rules: {
      '@typescript-eslint/explicit-module-boundary-types': 'off',
      '@typescript-eslint/no-empty-function': 'off',
    },
  },
  {
    files: ['**/*.mjs', '*.js', '*.cjs', 'src/server/.dependency-cruiser.cjs'],
    languageOptions: { globals: { module: 'writable' } },
    rules: {
      // JSON and command output are untyped here, and `tsc` checks the JSDoc types
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'off',
      'no-undef': 'off',
    },
  },
)
