// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import javax.naming.ldap.LdapName;
import javax.security.auth.x500.X500Principal;

/** Reads lines "base64-of-DER TAB text" and says whether text is that name. */
public class Subjects {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] parts = line.split("\t", -1);
            X500Principal want = new X500Principal(Base64.getDecoder().decode(parts[0]));
            String result;
            try {
                X500Principal got = new X500Principal(parts[1]);
                new LdapName(parts[1]);
                result = got.equals(want) ? "same" : "differs: " + want.getName() + " is not " + got.getName();
            } catch (Exception e) {
                result = "unreadable: " + e.getMessage();
            }
            System.out.println(result.replace('\n', ' '));
        }
    }
}
