// Users, roles and service tokens: the login API.
import { get } from "./api";
import { Polled } from "./polled";

export const login = "/api/v1/auth_proxy/";

export interface User {
  username: string;
  first_name: string;
  last_name: string;
  disable: boolean;
}

export interface Authorization {
  AuthzUUID: string;
  PrincipalName: string;
  Local: boolean;
  Role: string;
  TenantName: string;
}

export interface ServiceToken {
  id: string;
  name: string;
  role: string;
  tenantName?: string;
  creator: string;
  created: string;
  expires: string;
}

const often = 5000; // milliseconds

export const users = new Polled<User[] | null>(`${login}local_users/`, often);
export const authorizations = new Polled<Authorization[] | null>(`${login}authorizations/`, often);
export const tokens = new Polled<ServiceToken[] | null>(`${login}tokens/`, often, get);
