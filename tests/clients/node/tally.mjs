// What a suite has found so far: values that are as they should be, and those that are not, told at once.
let passed = 0;
let failed = 0;

export function equal(name, found, expected) {
  if (JSON.stringify(found) === JSON.stringify(expected)) {
    passed += 1;
  } else {
    failed += 1;
    console.log(`FAILED ${name}: found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
  }
}

// The last line of a suite, and its exit code.
export function tell() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
