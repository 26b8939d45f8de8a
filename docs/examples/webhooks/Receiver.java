import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * headers: names in lower case; body: the raw bytes; secrets: 64 hex digits each, the one you use and, while you change
 * it, the next. Both return the message as JSON text, and throw where it is not from this gateway.
 */
final class Receiver {
    private static final HexFormat HEX = HexFormat.of();
    private static final Pattern WRAPPED = Pattern.compile("\"encryptedBody\"\\s*:\\s*\"([0-9a-fA-F]+)\"");

    /** The message of a signed webhook. */
    static String readSigned(Map<String, String> headers, byte[] body, List<String> secrets)
            throws GeneralSecurityException {
        String sentAt = headers.getOrDefault("webhook-timestamp", "");
        if (!sentAt.matches("[0-9]{1,15}")
                || Math.abs(System.currentTimeMillis() / 1000 - Long.parseLong(sentAt)) > 300) {
            throw new GeneralSecurityException("too old, or not signed");
        }
        String before = headers.get("webhook-id") + "." + sentAt + ".";
        for (String secret : secrets) {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(HEX.parseHex(secret), "HmacSHA256"));
            mac.update(before.getBytes(StandardCharsets.UTF_8));
            byte[] expected = ("v1," + Base64.getEncoder().encodeToString(mac.doFinal(body))).getBytes();
            for (String signature : headers.getOrDefault("webhook-signature", "").split(" ")) {
                if (MessageDigest.isEqual(expected, signature.getBytes(StandardCharsets.UTF_8))) {
                    return new String(body, StandardCharsets.UTF_8);
                }
            }
        }
        throw new GeneralSecurityException("not signed with a secret of ours");
    }

    /** The message of an encrypted webhook, wrapped in JSON or not. */
    static String readEncrypted(Map<String, String> headers, byte[] body, List<String> secrets)
            throws GeneralSecurityException {
        String text = new String(body, StandardCharsets.UTF_8);
        Matcher wrapped = WRAPPED.matcher(text);
        byte[] sealed, iv, tag;
        try {
            sealed = HEX.parseHex(wrapped.find() ? wrapped.group(1) : text);
            iv = HEX.parseHex(headers.getOrDefault("x-initialization-vector", ""));
            tag = HEX.parseHex(headers.getOrDefault("x-authentication-tag", ""));
        } catch (IllegalArgumentException fault) {
            throw new GeneralSecurityException("body or headers are not hex");
        }
        if (iv.length != 12 || tag.length != 16) throw new GeneralSecurityException("not encrypted with a secret of ours");
        byte[] both = Arrays.copyOf(sealed, sealed.length + tag.length);
        System.arraycopy(tag, 0, both, sealed.length, tag.length);
        for (String secret : secrets) {
            try {
                Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
                SecretKeySpec key = new SecretKeySpec(HEX.parseHex(secret), "AES");
                cipher.init(Cipher.DECRYPT_MODE, key, new GCMParameterSpec(128, iv));
                return new String(cipher.doFinal(both), StandardCharsets.UTF_8);
            } catch (GeneralSecurityException notThisSecret) {
                // The next one.
            }
        }
        throw new GeneralSecurityException("not encrypted with a secret of ours");
    }
}
