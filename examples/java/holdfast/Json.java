package holdfast;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;

/** Reads and writes JSON as maps, lists and values, because the JDK cannot: use your own library if you have one. */
public final class Json {
    private final String text;
    private int at = 0;

    private Json(String text) {
        this.text = text;
    }

    /** Return the value that a text contains: a map, a list, a string, a long, a double, a boolean or null. */
    public static Object read(String text) {
        return new Json(text).value();
    }

    /** Return a map with these keys and values. */
    public static Map<String, Object> map(Object... pairs) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) made.put((String) pairs[i], pairs[i + 1]);
        return made;
    }

    /** Return the objects of a list. */
    @SuppressWarnings("unchecked")
    static List<Map<String, Object>> objects(Object list) {
        return (List<Map<String, Object>>) list;
    }

    /** Return the text of a value. */
    public static String write(Object value) {
        if (value instanceof Map<?, ?> pairs) {
            StringJoiner out = new StringJoiner(",", "{", "}");
            pairs.forEach((key, item) -> out.add(write(key) + ":" + write(item)));
            return out.toString();
        }
        if (value instanceof Collection<?> items) {
            StringJoiner out = new StringJoiner(",", "[", "]");
            items.forEach(item -> out.add(write(item)));
            return out.toString();
        }
        if (value == null || value instanceof Number || value instanceof Boolean) return String.valueOf(value);
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : value.toString().toCharArray()) {
            if (c == '"' || c == '\\') quoted.append('\\').append(c);
            else if (c < ' ') quoted.append(String.format("\\u%04x", (int) c));
            else quoted.append(c);
        }
        return quoted.append('"').toString();
    }

    private Object value() {
        switch (peek()) {
            case '{':
                Map<String, Object> pairs = new LinkedHashMap<>();
                for (at++; hasNext('}');) {
                    String key = string();
                    peek();  // skips white space before the colon
                    at++;
                    pairs.put(key, value());
                }
                return pairs;
            case '[':
                List<Object> items = new ArrayList<>();
                for (at++; hasNext(']');) items.add(value());
                return items;
            case '"':
                return string();
            case 't':
                at += 4;
                return true;
            case 'f':
                at += 5;
                return false;
            case 'n':
                at += 4;
                return null;
            default:
                return number();
        }
    }

    /** Skip white space; return the next character. */
    private char peek() {
        while (" \n\r\t".indexOf(text.charAt(at)) >= 0) at++;
        return text.charAt(at);
    }

    /** Skip a comma and return true, or skip the closing bracket and return false. */
    private boolean hasNext(char close) {
        if (peek() == ',') at++;
        if (peek() != close) return true;
        at++;
        return false;
    }

    private Number number() {
        int from = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at++;
        String digits = text.substring(from, at);
        if (digits.matches("-?\\d{1,18}")) return Long.valueOf(digits);
        return Double.valueOf(digits);
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char c = text.charAt(at);
            if (c != '\\') {
                out.append(c);
                continue;
            }
            char escape = text.charAt(++at);
            int control = "bfnrt".indexOf(escape);
            if (escape == 'u') {
                out.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                at += 4;
            } else {
                out.append(control < 0 ? escape : "\b\f\n\r\t".charAt(control));
            }
        }
        at++;
        return out.toString();
    }
}
