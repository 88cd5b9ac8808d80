import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.Document;
import io.netty.channel.Channel;
import java.util.Collection;
import java.util.List;

/**
 * The database of the conformance suite for one run: MongoDB's protocol over memory, on loopback. It adds the commands
 * of the suite that the library does not have.
 */
public class SuiteDatabase {
  /** The suite requires release 6. A higher wire version than 8 makes its driver use what the library lacks. */
  private static final MongoVersion VERSION =
      new MongoVersion() {
        @Override
        public List<Integer> getVersionArray() {
          return List.of(6, 0, 13);
        }

        @Override
        public int getWireVersion() {
          return 8;
        }

        @Override
        public String toVersionString() {
          return "6.0.13";
        }
      };

  private static class Backend extends MemoryBackend {
    @Override
    public Document handleCommand(Channel channel, String database, String command, Document query) {
      switch (command.toLowerCase()) {
        case "getparameter":
          return new Document("featureCompatibilityVersion", new Document("version", "6.0")).append("ok", 1.0);
        case "setfeaturecompatibilityversion":
          return new Document("ok", 1.0);
        case "createindexes":
          // Text indexes are for the search of its pages, and the library has none.
          List<?> usable = ((Collection<?>) query.get("indexes")).stream().filter(index -> !isText(index)).toList();
          if (usable.isEmpty()) return new Document("ok", 1.0);
          query.put("indexes", usable);
          return super.handleCommand(channel, database, command, query);
        default:
          return super.handleCommand(channel, database, command, query);
      }
    }

    private static boolean isText(Object index) {
      return index instanceof Document document
          && document.get("key") instanceof Document key
          && key.containsValue("text");
    }
  }

  public static void main(String[] args) {
    Backend backend = new Backend();
    backend.version(VERSION);
    MongoServer server = new MongoServer(backend);
    server.bind("127.0.0.1", Integer.parseInt(args[0]));
    Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
  }
}
