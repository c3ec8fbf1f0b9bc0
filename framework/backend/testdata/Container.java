// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Base64;
import javax.security.auth.x500.X500Principal;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.RemoteIpValve;
import org.apache.catalina.valves.SSLValve;

/**
 * A Tomcat with its SSLValve and RemoteIpValve, on a port that it prints. It
 * tells the certificate that the former took from a request, and the ones that
 * the header fields named in the query hold; or the URL that the latter made. It ends with its standard input.
 */
public class Container {
    public static void main(String[] args) throws Exception {
        String dir = Files.createTempDirectory("container").toString();
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(dir);
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context context = tomcat.addContext("", dir);
        Tomcat.addServlet(context, "teller", new Teller());
        context.addServletMappingDecoded("/*", "teller");
        RemoteIpValve remote = new RemoteIpValve(); // as Spring Boot sets it for "native"
        remote.setRemoteIpHeader("X-Forwarded-For");
        remote.setProtocolHeader("X-Forwarded-Proto");
        remote.setHostHeader("X-Forwarded-Host");
        remote.setPortHeader("X-Forwarded-Port");
        tomcat.getHost().getPipeline().addValve(remote);
        tomcat.getHost().getPipeline().addValve(new SSLValve());
        tomcat.start();
        System.out.println("port " + tomcat.getConnector().getLocalPort());
        while (System.in.read() >= 0) {
        }
        tomcat.stop();
        tomcat.destroy();
    }

    static class Teller extends HttpServlet {
        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            StringBuilder out = new StringBuilder();
            if (request.getParameter("cert") == null) {
                response.getWriter().print(request.getRequestURL() + " from " + request.getRemoteAddr() + ", secure: " + request.isSecure() + "\n");
                return;
            }
            try {
                X509Certificate[] valve = (X509Certificate[]) request.getAttribute("javax.servlet.request.X509Certificate");
                out.append("valve ").append(valve == null ? "none" : fingerprint(valve[0])).append('\n');
                X509Certificate named = read(request.getHeader(request.getParameter("cert")), request.getParameter("format"));
                out.append("cert ").append(named == null ? "none" : fingerprint(named)).append('\n');
                String subject = request.getHeader(request.getParameter("subject"));
                out.append("subject ").append(subject == null ? "none"
                        : named != null && new X500Principal(subject).equals(named.getSubjectX500Principal()) ? "same"
                        : "differs: " + subject).append('\n');
            } catch (Exception e) {
                out.append("error ").append(e).append('\n');
            }
            response.getWriter().print(out);
        }

        private static X509Certificate read(String header, String format) throws Exception {
            if (header == null) {
                return null;
            }
            byte[] bytes;
            switch (format) {
                case "rfc9440":
                    if (!header.startsWith(":") || !header.endsWith(":")) {
                        throw new IllegalArgumentException("no byte sequence: " + header);
                    }
                    bytes = Base64.getDecoder().decode(header.substring(1, header.length() - 1));
                    break;
                case "der-b64":
                    bytes = Base64.getDecoder().decode(header);
                    break;
                case "pem-urlencoded":
                    bytes = URLDecoder.decode(header, StandardCharsets.UTF_8).getBytes(StandardCharsets.US_ASCII);
                    break;
                default: // pem-spaces: all blanks but those in the two markers are line ends
                    String body = header.replaceAll("-----(BEGIN|END) CERTIFICATE-----", "").trim().replace(' ', '\n');
                    bytes = ("-----BEGIN CERTIFICATE-----\n" + body + "\n-----END CERTIFICATE-----\n")
                            .getBytes(StandardCharsets.US_ASCII);
            }
            return (X509Certificate) CertificateFactory.getInstance("X.509")
                    .generateCertificate(new ByteArrayInputStream(bytes));
        }

        private static String fingerprint(X509Certificate cert) throws Exception {
            StringBuilder hex = new StringBuilder();
            for (byte b : MessageDigest.getInstance("SHA-256").digest(cert.getEncoded())) {
                hex.append(String.format("%02x", b));
            }
            return hex.toString();
        }
    }
}
