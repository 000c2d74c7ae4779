import java.util.Objects;

/** What a suite has found so far. */
final class Tally {
    private static int passed;
    private static int failed;

    private Tally() {}

    static void pass() {
        passed++;
    }

    static void equal(String name, Object found, Object expected) {
        if (Objects.deepEquals(found, expected)) {
            passed++;
        } else {
            failed++;
            System.out.println("FAILED " + name + ": found " + found + ", expected " + expected);
        }
    }

    /** The last line of a suite, and the end of the process. */
    static void tell() {
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}
