import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Date;
import java.util.TimeZone;
import java.util.concurrent.*;
import org.quartz.CronExpression;

/**
 * Asks Quartz for the next five fire times of every line of standard input: expression, zone, from (epoch seconds),
 * separated by tabs. Writes the line with the times behind it (epoch seconds, blanks between them), "none" when it
 * never fires, "refused" when Quartz does not take the expression, "stuck" when it searches for more than 20 s.
 *
 * Not run by the tests: it made cases.tsv and clock_changes.tsv, with Quartz 2.3.2 (Debian: libquartz2-java,
 * libslf4j-java) and the commands in make_cases.py.
 */
public class QuartzOracle {
    private static final int TIMES = 5;

    private static String ask(String text, String zone, long from) {
        CronExpression expression;
        try {
            expression = new CronExpression(text);
        } catch (Exception fault) {
            return "refused";
        }
        expression.setTimeZone(TimeZone.getTimeZone(zone));
        StringBuilder found = new StringBuilder();
        Date at = new Date(from * 1000);
        for (int number = 0; number < TIMES; number++) {
            at = expression.getNextValidTimeAfter(at);
            if (at == null) {
                break;
            }
            found.append(number == 0 ? "" : " ").append(at.getTime() / 1000);
        }
        return found.length() == 0 ? "none" : found.toString();
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newCachedThreadPool();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            Future<String> answer = pool.submit(() -> ask(parts[0], parts[1], Long.parseLong(parts[2])));
            String told;
            try {
                told = answer.get(20, TimeUnit.SECONDS);
            } catch (TimeoutException slow) {
                told = "stuck";
            }
            System.out.println(line + "\t" + told);
        }
        System.out.flush();
        System.exit(0);
    }
}
