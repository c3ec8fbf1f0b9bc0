// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.cert.*;
import java.util.*;
import javax.net.ssl.*;

/**
 * Asks HTTPS servers for "/" as a Java client does. Arguments: CA file (PEM),
 * optionally -Dclient.keystore=FILE -Dclient.password=PW for a client
 * certificate. Lines on standard input: "host port sni protocol"; for each, a
 * line "protocol suite subject status" or "error: ..." on standard output.
 */
public class TLSClient {
    public static void main(String[] args) throws Exception {
        SSLContext context = context(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] f = line.trim().split(" ");
            try {
                System.out.println(ask(context, f[0], Integer.parseInt(f[1]), f[2], f[3]));
            } catch (IOException e) {
                System.out.println("error: " + e.getMessage());
            }
        }
    }

    static SSLContext context(String caFile) throws Exception {
        KeyStore trust = KeyStore.getInstance("PKCS12");
        trust.load(null, null);
        try (InputStream in = new FileInputStream(caFile)) {
            int n = 0;
            for (Certificate c : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                trust.setCertificateEntry("ca" + n++, c);
            }
        }
        TrustManagerFactory tmf = TrustManagerFactory.getInstance("PKIX");
        tmf.init(trust);
        KeyManager[] keys = null;
        if (System.getProperty("client.keystore") != null) {
            char[] password = System.getProperty("client.password").toCharArray();
            KeyStore ks = KeyStore.getInstance("PKCS12");
            try (InputStream in = new FileInputStream(System.getProperty("client.keystore"))) {
                ks.load(in, password);
            }
            KeyManagerFactory kmf = KeyManagerFactory.getInstance("PKIX");
            kmf.init(ks, password);
            keys = kmf.getKeyManagers();
        }
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys, tmf.getTrustManagers(), null);
        return context;
    }

    static String ask(SSLContext context, String host, int port, String sni, String protocol) throws IOException {
        try (SSLSocket s = (SSLSocket) context.getSocketFactory().createSocket(host, port)) {
            s.setSoTimeout(10_000);
            SSLParameters p = s.getSSLParameters();
            p.setProtocols(new String[] {protocol});
            p.setServerNames(List.of(new SNIHostName(sni)));
            p.setApplicationProtocols(new String[] {"http/1.1"});
            s.setSSLParameters(p);
            s.startHandshake();
            Writer out = new OutputStreamWriter(s.getOutputStream(), StandardCharsets.US_ASCII);
            out.write("GET / HTTP/1.1\r\nHost: " + sni + "\r\nConnection: close\r\n\r\n");
            out.flush();
            BufferedReader in = new BufferedReader(new InputStreamReader(s.getInputStream(), StandardCharsets.US_ASCII));
            String status = in.readLine();
            SSLSession session = s.getSession();
            X509Certificate leaf = (X509Certificate) session.getPeerCertificates()[0];
            return session.getProtocol() + " " + session.getCipherSuite() + " " + leaf.getSubjectX500Principal() + " " + status;
        }
    }
}
