// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.KeyStoreBuilderParameters;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedKeyManager;
import javax.net.ssl.X509ExtendedTrustManager;

/**
 * Asks the key managers of the JDK that runs it which entry they hand out, by
 * real handshakes between two engines in memory. One question per line on
 * standard input, tab-separated: id, algorithm, role, protocol, suites, schemes,
 * server name, files of CA certificates, keystores. Answers on standard output,
 * tab-separated: id, "ok" or "failed", alias as the key manager calls it.
 *
 * Arguments: the keystore of the other side, of whose entries (named by a
 * signature scheme) one that can sign is taken, and the password of all stores.
 */
public final class AskKeyManagers {
    private static final Map<String, KeyStore> stores = new HashMap<>();
    private static char[] password;

    public static void main(String[] args) throws Exception {
        password = args[1].toCharArray();
        KeyStore other = load(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line; (line = in.readLine()) != null; ) {
            String[] question = line.split("\t", -1);
            out.append(question[0]).append('\t').append(new Question(question).ask(other)).append('\n');
        }
        System.out.print(out);
    }

    private static KeyStore load(String path) throws Exception {
        KeyStore s = stores.get(path);
        if (s == null) {
            s = KeyStore.getInstance("PKCS12");
            try (InputStream in = new FileInputStream(path)) {
                s.load(in, password);
            }
            stores.put(path, s);
        }
        return s;
    }

    private static final class Question {
        final String algorithm, protocol, suites, name;
        final boolean server;
        final String[] schemes, authorities, paths;

        Question(String[] f) {
            algorithm = f[1];
            server = f[2].equals("server");
            protocol = f[3];
            suites = f[4];
            schemes = split(f[5]);
            name = f[6];
            authorities = split(f[7]);
            paths = split(f[8]);
        }

        private static String[] split(String s) {
            return s.isEmpty() ? new String[0] : s.split(",");
        }

        String ask(KeyStore other) throws Exception {
            Witness asked = new Witness(keyManager());
            SSLEngine serverEngine, clientEngine;
            if (server) {
                serverEngine = context(asked, new Anything()).createSSLEngine();
                clientEngine = context(null, new Anything()).createSSLEngine();
                offer(clientEngine);
            } else {
                serverEngine = context(new Fixed(other, schemes), new Anything(authorities)).createSSLEngine();
                clientEngine = context(asked, new Anything()).createSSLEngine();
                offer(serverEngine);
                serverEngine.setWantClientAuth(true);
            }
            clientEngine.setUseClientMode(true);
            serverEngine.setUseClientMode(false);
            clientEngine.setEnabledProtocols(new String[] {protocol});
            clientEngine.setEnabledCipherSuites(suites(clientEngine));
            if (!name.isEmpty()) {
                SSLParameters p = clientEngine.getSSLParameters();
                p.setServerNames(List.of(new SNIHostName(name.getBytes(StandardCharsets.US_ASCII))));
                clientEngine.setSSLParameters(p);
            }
            String outcome = "ok";
            try {
                new Pipe(clientEngine, serverEngine).handshake();
            } catch (javax.net.ssl.SSLException e) {
                outcome = "failed";
            }
            return outcome + "\t" + asked.alias;
        }

        private KeyManager keyManager() throws Exception {
            KeyManagerFactory f = KeyManagerFactory.getInstance(algorithm);
            if (algorithm.equals("SunX509")) {
                f.init(load(paths[0]), password);
                return f.getKeyManagers()[0];
            }
            List<KeyStore.Builder> builders = new ArrayList<>();
            for (String path : paths) {
                builders.add(KeyStore.Builder.newInstance(load(path), new KeyStore.PasswordProtection(password)));
            }
            f.init(new KeyStoreBuilderParameters(builders));
            return f.getKeyManagers()[0];
        }

        /** Offers the schemes where this JDK can be told to; older ones are told by a system property. */
        private void offer(SSLEngine engine) throws Exception {
            SSLParameters p = engine.getSSLParameters();
            try {
                SSLParameters.class.getMethod("setSignatureSchemes", String[].class).invoke(p, (Object) schemes);
            } catch (NoSuchMethodException e) {
                return;
            }
            engine.setSSLParameters(p);
        }

        private String[] suites(SSLEngine engine) {
            List<String> chosen = new ArrayList<>();
            for (String s : engine.getSupportedCipherSuites()) {
                boolean modern = s.startsWith("TLS_AES_") || s.startsWith("TLS_CHACHA20_");
                if (modern || s.startsWith("TLS_ECDHE_ECDSA_") && !suites.equals("rsa")
                        || s.startsWith("TLS_ECDHE_RSA_") && !suites.equals("ecdsa")) {
                    chosen.add(s);
                }
            }
            return chosen.toArray(new String[0]);
        }
    }

    private static SSLContext context(KeyManager km, TrustManager tm) throws Exception {
        SSLContext c = SSLContext.getInstance("TLS");
        c.init(km == null ? new KeyManager[0] : new KeyManager[] {km}, new TrustManager[] {tm}, null);
        return c;
    }

    /** Carries the bytes of one handshake between two engines. */
    private static final class Pipe {
        private final SSLEngine client, server;
        private final ByteBuffer toServer = ByteBuffer.allocate(1 << 17), toClient = ByteBuffer.allocate(1 << 17);
        private final ByteBuffer sink = ByteBuffer.allocate(1 << 17);

        Pipe(SSLEngine client, SSLEngine server) {
            this.client = client;
            this.server = server;
        }

        void handshake() throws Exception {
            client.beginHandshake();
            server.beginHandshake();
            for (int i = 0; i < 100 && !(done(client) && done(server)); i++) {
                step(client, toClient, toServer);
                step(server, toServer, toClient);
            }
        }

        private static boolean done(SSLEngine e) {
            return e.getHandshakeStatus() == HandshakeStatus.NOT_HANDSHAKING;
        }

        private void step(SSLEngine e, ByteBuffer from, ByteBuffer to) throws Exception {
            for (boolean going = true; going; ) {
                switch (e.getHandshakeStatus()) {
                    case NEED_TASK:
                        for (Runnable r; (r = e.getDelegatedTask()) != null; ) {
                            r.run();
                        }
                        break;
                    case NEED_WRAP:
                        going = e.wrap(ByteBuffer.allocate(0), to).bytesProduced() > 0;
                        break;
                    case NEED_UNWRAP:
                        from.flip();
                        sink.clear();
                        going = from.hasRemaining() && e.unwrap(from, sink).bytesConsumed() > 0;
                        from.compact();
                        break;
                    default:
                        going = false;
                }
            }
        }
    }

    /** Asks a key manager and notes the alias that it was taken at its word for last. */
    private static final class Witness extends X509ExtendedKeyManager {
        private final X509ExtendedKeyManager km;
        String alias = "";

        Witness(KeyManager km) {
            this.km = (X509ExtendedKeyManager) km;
        }

        @Override public String chooseEngineServerAlias(String type, Principal[] issuers, SSLEngine e) {
            return km.chooseEngineServerAlias(type, issuers, e);
        }

        @Override public String chooseEngineClientAlias(String[] types, Principal[] issuers, SSLEngine e) {
            return km.chooseEngineClientAlias(types, issuers, e);
        }

        @Override public X509Certificate[] getCertificateChain(String a) {
            alias = a;
            return km.getCertificateChain(a);
        }

        @Override public PrivateKey getPrivateKey(String a) {
            return km.getPrivateKey(a);
        }

        @Override public String[] getClientAliases(String type, Principal[] issuers) { return null; }
        @Override public String[] getServerAliases(String type, Principal[] issuers) { return null; }
        @Override public String chooseClientAlias(String[] types, Principal[] issuers, Socket s) { return null; }
        @Override public String chooseServerAlias(String type, Principal[] issuers, Socket s) { return null; }
    }

    /** Hands out the entry that is named by a scheme which the peer offers. */
    private static final class Fixed extends X509ExtendedKeyManager {
        private final KeyStore store;
        private String alias;

        Fixed(KeyStore store, String[] schemes) throws Exception {
            this.store = store;
            for (String s : schemes) {
                if (alias == null && store.containsAlias(s)) {
                    alias = s;
                }
            }
        }

        @Override public String chooseEngineServerAlias(String type, Principal[] issuers, SSLEngine e) {
            return alias != null && getPrivateKey(alias).getAlgorithm().equals(type) ? alias : null;
        }

        @Override public X509Certificate[] getCertificateChain(String a) {
            try {
                return new X509Certificate[] {(X509Certificate) store.getCertificate(a)};
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }

        @Override public PrivateKey getPrivateKey(String a) {
            try {
                return (PrivateKey) store.getKey(a, password);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }

        @Override public String[] getClientAliases(String type, Principal[] issuers) { return null; }
        @Override public String[] getServerAliases(String type, Principal[] issuers) { return null; }
        @Override public String chooseClientAlias(String[] types, Principal[] issuers, Socket s) { return null; }
        @Override public String chooseServerAlias(String type, Principal[] issuers, Socket s) { return null; }
    }

    /** Trusts every peer and names authorities. */
    private static final class Anything extends X509ExtendedTrustManager {
        private final X509Certificate[] authorities;

        Anything(String... paths) throws Exception {
            authorities = new X509Certificate[paths.length];
            CertificateFactory f = CertificateFactory.getInstance("X.509");
            for (int i = 0; i < paths.length; i++) {
                try (InputStream in = new FileInputStream(paths[i])) {
                    authorities[i] = (X509Certificate) f.generateCertificate(in);
                }
            }
        }

        @Override public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine e) {}
        @Override public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine e) {}
        @Override public void checkClientTrusted(X509Certificate[] chain, String type, Socket s) {}
        @Override public void checkServerTrusted(X509Certificate[] chain, String type, Socket s) {}
        @Override public void checkClientTrusted(X509Certificate[] chain, String type) {}
        @Override public void checkServerTrusted(X509Certificate[] chain, String type) {}
        @Override public X509Certificate[] getAcceptedIssuers() { return authorities.clone(); }
    }
}
