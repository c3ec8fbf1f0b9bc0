// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;
import javax.net.ssl.TrustManagerFactory;

/**
 * Makes TLS handshakes in memory, client and server on one thread, and has turns
 * as memory.Serve has: for each line of stdin, a number of milliseconds, it makes
 * handshakes for that long and prints how many there were.
 *
 * <p>Arguments: PKCS#12, its password, PEM file with the root, algorithm of the
 * key manager, version, whether to resume, server name or "".
 */
public final class Handshakes {
    private final SSLContext context;
    private final String version;
    private final boolean resume;
    private final String name;

    private Handshakes(SSLContext context, String version, boolean resume, String name) {
        this.context = context;
        this.version = version;
        this.resume = resume;
        this.name = name;
    }

    public static void main(String[] args) throws Exception {
        SSLContext context = context(args[0], args[1].toCharArray(), args[2], args[3]);
        Handshakes handshakes = new Handshakes(context, args[4], Boolean.parseBoolean(args[5]), args[6]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            long end = System.nanoTime() + Long.parseLong(line) * 1_000_000;
            int n = 0;
            for (; System.nanoTime() < end; n++) {
                handshakes.make();
            }
            System.out.println(n);
        }
    }

    private static SSLContext context(String store, char[] password, String root, String algorithm) throws Exception {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (FileInputStream in = new FileInputStream(store)) {
            keys.load(in, password);
        }
        KeyManagerFactory own = KeyManagerFactory.getInstance(algorithm);
        own.init(keys, password);
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        try (FileInputStream in = new FileInputStream(root)) {
            trusted.setCertificateEntry("root", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory others = TrustManagerFactory.getInstance("PKIX");
        others.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(own.getKeyManagers(), others.getTrustManagers(), null);
        return context;
    }

    private void make() throws SSLException {
        SSLEngine client = context.createSSLEngine("client", 443);
        client.setUseClientMode(true);
        SSLParameters parameters = client.getSSLParameters();
        parameters.setProtocols(new String[] {version});
        if (!name.isEmpty()) {
            parameters.setServerNames(List.of(new SNIHostName(name)));
        }
        client.setSSLParameters(parameters);
        SSLEngine server = context.createSSLEngine();
        server.setUseClientMode(false);

        ByteBuffer toServer = ByteBuffer.allocate(1 << 16);
        ByteBuffer toClient = ByteBuffer.allocate(1 << 16);
        while (shaking(client) || shaking(server)) {
            step(client, toServer, toClient);
            step(server, toClient, toServer);
        }
        SSLSession session = client.getSession();
        if (resume) { // TLS 1.3's ticket is on its way
            step(server, toClient, toServer);
            step(client, toServer, toClient);
        } else { // TLS 1.2's session would be resumed
            session.invalidate();
        }
    }

    private static boolean shaking(SSLEngine engine) {
        HandshakeStatus status = engine.getHandshakeStatus();
        // An engine that nothing was asked of says that it isn't shaking hands.
        return status != HandshakeStatus.NOT_HANDSHAKING || engine.getSession().getProtocol().equals("NONE");
    }

    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    /** Reads what has come, and writes what is due. */
    private static void step(SSLEngine engine, ByteBuffer out, ByteBuffer in) throws SSLException {
        in.flip();
        ByteBuffer plain = ByteBuffer.allocate(1 << 14 + 1);
        while (in.hasRemaining() && engine.getHandshakeStatus() != HandshakeStatus.NEED_WRAP) {
            SSLEngineResult result = engine.unwrap(in, plain);
            work(engine);
            if (result.bytesConsumed() == 0 && result.getHandshakeStatus() != HandshakeStatus.NEED_TASK) {
                break;
            }
        }
        in.compact();
        do {
            SSLEngineResult result = engine.wrap(NOTHING.duplicate(), out);
            work(engine);
            if (result.bytesProduced() == 0) {
                break;
            }
        } while (engine.getHandshakeStatus() == HandshakeStatus.NEED_WRAP);
    }

    private static void work(SSLEngine engine) {
        for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
            task.run();
        }
    }
}
