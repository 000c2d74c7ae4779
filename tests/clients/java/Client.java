import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;

/** Jedis with both protocols: strings, expiry, transactions, scanning, pipelines, binary values. */
public class Client {
    public static void main(String[] args) {
        HostAndPort address = new HostAndPort("127.0.0.1", Integer.parseInt(args[args.length - 1]));
        for (RedisProtocol protocol : List.of(RedisProtocol.RESP2, RedisProtocol.RESP3)) {
            try (Jedis jedis = new Jedis(address, DefaultJedisClientConfig.builder().protocol(protocol).build());
                    Jedis other = new Jedis(address)) {
                jedis.flushAll();
                run(jedis, other);
            }
        }
        Tally.tell();
    }

    static void run(Jedis jedis, Jedis other) {
        Tally.equal("set", jedis.set("a", "1"), "OK");
        Tally.equal("set nx", jedis.set("a", "2", SetParams.setParams().nx()), null);
        Tally.equal("incr", jedis.incrBy("a", 41), 42L);
        Tally.equal("float", jedis.incrByFloat("a", 0.25), 42.25);
        Tally.equal("mget", jedis.mget("a", "none"), Arrays.asList("42.25", null));
        Tally.equal("expire", jedis.expire("a", 100), 1L);
        Tally.equal("ttl", jedis.ttl("a"), 100L);
        byte[] binary = new byte[100_000];
        for (int at = 0; at < binary.length; at++) {
            binary[at] = (byte) (at * 31);
        }
        jedis.set("binary".getBytes(), binary);
        Tally.equal("binary", jedis.get("binary".getBytes()), binary);
        Transaction transaction = jedis.multi();
        transaction.set("t", "1");
        transaction.incr("t");
        Tally.equal("exec", transaction.exec(), Arrays.asList("OK", 2L));
        jedis.watch("t");
        other.set("t", "other");
        Transaction late = jedis.multi();
        late.set("t", "mine");
        Tally.equal("watch", late.exec(), null);
        Tally.equal("not overwritten", jedis.get("t"), "other");
        Pipeline pipeline = jedis.pipelined();
        for (int n = 0; n < 3000; n++) {
            pipeline.set("key:" + n, "v" + n);
        }
        Response<String> last = pipeline.get("key:2999");
        pipeline.sync();
        Tally.equal("pipeline", last.get(), "v2999");
        Set<String> seen = new HashSet<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> page = jedis.scan(cursor, new ScanParams().match("key:*").count(200));
            seen.addAll(page.getResult());
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        Tally.equal("scan", seen.size(), 3000);
        String error = "";
        try {
            jedis.incr("binary");
        } catch (JedisDataException exception) {
            error = exception.getMessage();
        }
        Tally.equal("error", error, "ERR value is not an integer or out of range");
        Tally.equal("rename", jedis.rename("key:1", "renamed"), "OK");
        Tally.equal("type", jedis.type("renamed"), "string");
        Tally.equal("bits", jedis.setbit("bits", 77, true), false);
        Tally.equal("bitcount", jedis.bitcount("bits"), 1L);
    }
}
