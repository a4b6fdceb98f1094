package io.ropeway.junit;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/** Makes a certificate that nobody has signed: gRPC clients use TLS, and trust any. */
final class TestCertificate {
    private static final String ALIAS = "ropeway";
    private static final String PASSWORD = "only-for-tests";

    private TestCertificate() {}

    /** Makes one in a folder; gives the options of {@code ropeway serve} for it. */
    static List<String> optionsIn(Path folder) throws IOException {
        Path store = folder.resolve("certificate.p12");
        Path keytool = Paths.get(System.getProperty("java.home"), "bin", "keytool");
        List<String> line =
                Arrays.asList(
                        keytool.toString(),
                        "-genkeypair",
                        "-keystore",
                        store.toString(),
                        "-storetype",
                        "PKCS12",
                        "-storepass",
                        PASSWORD,
                        "-alias",
                        ALIAS,
                        "-keyalg",
                        "EC",
                        "-keysize",
                        "256",
                        "-dname",
                        "CN=localhost",
                        "-ext",
                        "san=ip:127.0.0.1,dns:localhost");
        RopewayCommand.run(new ProcessBuilder(line), folder);
        try (InputStream content = Files.newInputStream(store)) {
            KeyStore keys = KeyStore.getInstance("PKCS12");
            keys.load(content, PASSWORD.toCharArray());
            byte[] certificate = keys.getCertificate(ALIAS).getEncoded();
            byte[] key = keys.getKey(ALIAS, PASSWORD.toCharArray()).getEncoded();
            return Arrays.asList(
                    "--tls-cert=" + pem(folder, "CERTIFICATE", certificate),
                    "--tls-key=" + pem(folder, "PRIVATE KEY", key));
        } catch (GeneralSecurityException error) {
            throw new RopewayException("cannot make a certificate", error);
        }
    }

    private static Path pem(Path folder, String kind, byte[] content) throws IOException {
        byte[] newline = {'\n'};
        String text = Base64.getMimeEncoder(64, newline).encodeToString(content);
        String whole = "-----BEGIN " + kind + "-----\n" + text + "\n-----END " + kind + "-----\n";
        Path file = folder.resolve(kind.replace(' ', '-') + ".pem");
        return Files.write(file, whole.getBytes(StandardCharsets.US_ASCII));
    }
}
